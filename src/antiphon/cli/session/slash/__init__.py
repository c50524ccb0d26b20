"""The lines of a conversation that begin with a slash: `commands` lists them; `telling` (what is the case),
`branches` (other runs), `doing` (what changes this one) do them."""
