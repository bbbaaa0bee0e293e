import type { Cut, Format, INCLUDED, Profile, Similarity } from '../../engine/index.ts';
import type { QueryMemoriesInput } from '../../client/index.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { describeLeftOut, describeHits } from '../show-hits.ts';
import { dim, print, yellow } from '../terminal.ts';

/** Options of a query that do not concern the form of its output. */
export interface AskOptions extends ConnectionOptions {
  readonly user?: string;
  readonly k?: number;
  readonly profile?: Profile;
  readonly minScore?: number;
  readonly cut?: Cut;
  /** Earlier time for which the query is answered, as Unix ms or ISO 8601. */
  readonly asOf?: number | string;
  readonly similarity?: Similarity;
  readonly include?: (typeof INCLUDED)[number];
  readonly deep?: boolean;
}

export interface QueryCommandOptions extends AskOptions {
  readonly explain?: boolean;
  readonly format?: Format;
  readonly json?: boolean;
}

/**
 * Runs `cairn query TEXT…`: sends the words, joined by spaces, as a query and prints the hits, or the server's reply
 * with `json`, or its text with `format`.
 */
export async function query(words: readonly string[], options: QueryCommandOptions): Promise<void> {
  const text = words.join(' ');
  const format = options.json ? 'json' : options.format;
  const reply = await connect(options).queryMemories({
    ...queryBody(text, options),
    explain: options.explain,
    format,
  });
  if (format === 'json') return print(JSON.stringify(reply, null, 2));
  if (format !== undefined) return print(reply.text ?? '');
  if (reply.degraded_reasons?.includes('vectors'))
    print(yellow('The embedding provider did not answer in time: these hits were found by words only.'), '');
  if (reply.degraded_reasons?.some((reason) => reason !== 'vectors'))
    print(yellow('The filter is too costly for this server: these hits are those found until the work ended.'), '');
  print(...(reply.matches.length === 0 ? ['No memory matches.'] : describeHits(reply.matches, text)));
  print(...describeLeftOut(reply).map(dim));
}

/** Makes the body of a query. An option that was not given is undefined, so that the server's default applies. */
export function queryBody(query: string, options: AskOptions): QueryMemoriesInput {
  return {
    query,
    k: options.k,
    user_id: options.user,
    profile: options.profile,
    min_score: options.minScore,
    cut: options.cut,
    as_of: options.asOf,
    similarity: options.similarity,
    include: options.include === undefined ? undefined : [options.include],
    deep_recall: options.deep,
  };
}
