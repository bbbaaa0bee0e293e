/**
 * `cairn-memory/langgraph`: Cairn as the store of LangGraph, as a retriever and a chat history of LangChain, and as the
 * memory of its agents. The packages `@langchain/core` and `@langchain/langgraph-checkpoint` come with LangGraph.
 */
export { CairnError, type CairnOptions } from '../connection.ts';
export { cairnMemory, type CairnMemory, type CairnMemoryOptions } from './agent-memory.ts';
export { CairnChatHistory, type CairnChatHistoryOptions } from './chat-history.ts';
export { CairnRetriever, type CairnRetrieverOptions } from './retriever.ts';
export { CairnStore, type CairnStoreOptions } from './store.ts';
