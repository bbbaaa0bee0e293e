/** Names by which extra tools are asked for: they are offered only if a setting, or the address, names them. */
export const EXTRAS = ['forget', 'search_fetch', 'feedback'] as const;
/**
 * Name by which extra tools are asked for. `search_fetch` stands for the tools `search` and `fetch`, which ChatGPT's
 * connectors ask for, and `feedback` for the tool `rate_recall`.
 */
export type Extra = (typeof EXTRAS)[number];
