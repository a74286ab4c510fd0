"""Permission-aware evaluation of search and RAG."""
