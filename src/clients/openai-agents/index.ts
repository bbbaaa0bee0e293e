/** `cairn-memory/openai-agents`: the sessions of the OpenAI Agents SDK (`@openai/agents`), kept by a Cairn server. */
export { CairnSession, type CairnSessionOptions, type HistoryTransaction } from './session.ts';
