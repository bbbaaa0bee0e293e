/** The tools that are offered only if a setting, or the address that the client was given, asks for them. */
export const EXTRAS = ['forget', 'search_fetch', 'feedback'] as const;
/** Name of an extra tool. `search_fetch` stands for two tools, which ChatGPT's connectors ask for. */
export type Extra = (typeof EXTRAS)[number];
