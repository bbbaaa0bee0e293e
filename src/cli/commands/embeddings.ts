import type { ProviderUsageItem } from '../../api/schemas/providers.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { age, count, cut, dim, print, red, table, widthOfTerminal } from '../terminal.ts';

interface UsageReply {
  readonly items: readonly ProviderUsageItem[];
  readonly totals: Omit<ProviderUsageItem, 'day' | 'provider' | 'model' | 'purpose'>;
}

/** Runs `cairn embeddings`: prints the calls, tokens and cost of the last `days` days by day, model and purpose. */
export async function embeddingStats(options: ConnectionOptions & { readonly days: number }): Promise<void> {
  const { items, totals } = await connect(options).sumProviderCalls({ days: options.days });
  if (items.length === 0) return print('No calls of a provider.');
  const [head, ...rows] = table(
    [
      ['day', 'model', 'for', 'calls', 'failed', 'texts', 'tokens', 'cost', 'cached', 'saved tokens'],
      ...items.map((item) => [item.day, item.model, item.purpose, ...figures(item)]),
      ['all', '', '', ...figures(totals)],
    ],
    '<<<>>>>>>>',
  );
  print(dim(head!), ...rows);
}

/** Runs `cairn embeddings failures`: prints the latest failed calls of providers, at most `limit`. */
export async function embeddingFailures(options: ConnectionOptions & { readonly limit: number }): Promise<void> {
  const { items, total } = await connect(options).listProviderCalls({ state: 'failed', l: options.limit });
  if (items.length === 0) return print('No failed calls.');
  const rows = table(
    [
      ['when', 'model', 'for', 'texts', 'ms'],
      ...items.map((call) => [age(call.at), call.model, call.purpose, count(call.texts), count(Math.round(call.ms))]),
    ],
    '<<<>>',
  );
  print(dim(rows[0]!));
  for (const [place, { error }] of items.entries()) {
    print(rows[place + 1]!, `  ${red(cut(`${error?.code}: ${error?.message}`, widthOfTerminal() - 2))}`);
  }
  if (total > items.length) print(dim(`and ${count(total - items.length)} more: --limit shows up to 1,000`));
}

function figures(item: UsageReply['totals']): string[] {
  return [
    count(item.calls),
    count(item.failed),
    count(item.texts),
    count(item.tokens + item.output_tokens),
    `$${item.cost_usd.toFixed(item.cost_usd < 1 ? 4 : 2)}`,
    count(item.cached_texts),
    count(item.saved_tokens),
  ];
}
