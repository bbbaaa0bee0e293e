/** The tools that are offered only where a setting, or the address that the client was given, asks for them. */
export const EXTRAS = ['forget', 'search_fetch', 'feedback'] as const;
/** Names an extra tool, or with `search_fetch` the two tools that ChatGPT's connectors ask for. */
export type Extra = (typeof EXTRAS)[number];
