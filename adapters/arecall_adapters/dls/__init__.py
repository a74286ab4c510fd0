"""What the adapters of Elasticsearch and OpenSearch share: documents are enumerated as the principal, from one index state.

The engines differ where it hurts most (what a role without a query does, what an alias opens, what API keys see), so this
package decides nothing of that kind: it asks, and takes what the engine answers.
"""
