"""A document as HTML, text, Markdown or JSON. Each has the same content."""
