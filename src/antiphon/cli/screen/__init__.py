"""A conversation on a terminal: what is finished goes into its scrollback, once; below it what goes on.

`painter` draws a few rows where the cursor is, `prose` makes rows of what agents write, `keys` reads keys,
`approval` and `choices` are what stands in the editor's place while a person is asked, `inline` puts these
together. May import: `display`. Never the alternate screen: what was said stays when the program has ended.
"""
