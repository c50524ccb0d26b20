"""Toolkits: tools by declaration, and who may use which."""
