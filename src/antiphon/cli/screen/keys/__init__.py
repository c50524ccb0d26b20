"""What keys mean, and what they write: `keymap` (which is pressed for what), `editor` (the text), `history`,
`pastes` (large ones, and images), `finder` (files that are mentioned), `outside` ($EDITOR). Draws nothing.
May import: `display`."""
