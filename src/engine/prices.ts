/**
 * Price of a million tokens in US dollars: `input` for tokens that are read, `output` for tokens that a language model
 * writes.
 */
interface Price {
  readonly input: number;
  readonly output: number;
}

/** Prices of models by their names. */
export type Prices = ReadonlyMap<string, Price>;

/** List prices of models at the companies that make them, as of November 2026. `OM_PRICES` overrides them. */
const KNOWN: readonly [string, Price][] = [
  ['text-embedding-3-small', { input: 0.02, output: 0 }],
  ['text-embedding-3-large', { input: 0.13, output: 0 }],
  ['text-embedding-ada-002', { input: 0.1, output: 0 }],
  ['gemini-embedding-001', { input: 0.15, output: 0 }],
  ['amazon.titan-embed-text-v2:0', { input: 0.02, output: 0 }],
  ['gpt-4o-mini', { input: 0.15, output: 0.6 }],
  ['gpt-4.1-nano', { input: 0.1, output: 0.4 }],
  ['gpt-4.1-mini', { input: 0.4, output: 1.6 }],
];

/**
 * Parses the value of `OM_PRICES`: `name=input` or `name=input/output`, comma-separated, in US dollars per million
 * tokens; '' states none.
 * @returns the list prices that are built in, overridden and extended by those of the text; undefined if any entry has
 *   another form
 */
export function parsePrices(text: string): Prices | undefined {
  const prices = new Map(KNOWN);
  for (const entry of text.split(',').filter((part) => part.trim() !== '')) {
    const [, name, input, output] =
      /^\s*([^=\s]+)\s*=\s*(\d{1,6}(?:\.\d{1,9})?)(?:\/(\d{1,6}(?:\.\d{1,9})?))?\s*$/.exec(entry) ?? [];
    if (name === undefined) return undefined;
    prices.set(name, { input: Number(input), output: Number(output ?? 0) });
  }
  return prices;
}

/**
 * Returns the cost of a call in US dollars. If the model's full name has no price, the part after its last `/` is
 * looked up; a model without a price, such as one that runs on this machine, costs 0.
 * @param call.tokens number of tokens that the model read; `outputTokens` is the number that it wrote
 */
export function costOf(
  prices: Prices,
  { model, tokens, outputTokens }: { readonly model: string; readonly tokens: number; readonly outputTokens: number },
): number {
  // Routers and ARNs put the name of a vendor or a path before the model's.
  const price = prices.get(model) ?? prices.get(model.slice(model.lastIndexOf('/') + 1));
  return price === undefined ? 0 : (tokens * price.input + outputTokens * price.output) / 1e6;
}
