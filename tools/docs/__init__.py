"""What the documentation site has beside the pages in docs/: pictures, and further pages."""
