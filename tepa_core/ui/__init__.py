"""What the pages share. The only package that knows Streamlit."""
