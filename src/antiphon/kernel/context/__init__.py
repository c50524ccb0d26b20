"""What a model is shown: how a conversation grows, is cut and is compacted. Pure text.

May import: `values`, `errors`. Never: events or state.
"""
