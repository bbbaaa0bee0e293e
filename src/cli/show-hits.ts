import type { matchItem, memoryItem } from '../api/wire.ts';
import { showExcerpt, wordsOf } from './excerpt.ts';
import { age, bold, cut, cyan, dim, green, table, widthOfTerminal } from './terminal.ts';

/** A memory and a hit as the server sends them. */
export type MemoryItem = ReturnType<typeof memoryItem>;
export type MatchItem = ReturnType<typeof matchItem>;

export interface QueryReply {
  readonly matches: readonly MatchItem[];
  readonly degraded: boolean;
}

const INDENT = '    ';
const FEATURES = ['similarity', 'salience', 'recency', 'waypoint'] as const;

/**
 * Hits as a person would like to read them, best first; with what `explain` brought below each.
 * @param query decides which part of a long text is shown
 */
export function describeHits(matches: readonly MatchItem[], query: string, now = Date.now()): string[] {
  return matches.flatMap((match, place) => [
    ...(place === 0 ? [] : ['']),
    ...describeHit(match, { rank: place + 1, query, now }),
    ...(match.explain === undefined ? [] : describeReasons(match, matches)),
  ]);
}

function describeHit(match: MatchItem, { rank, query, now }: { rank: number; query: string; now: number }): string[] {
  const width = widthOfTerminal();
  const user = match.user_id === '' ? '' : ` · ${cut(match.user_id, 20)}`;
  const facts = `${match.primary_sector} · ${age(match.event_time, now)}${user}`;
  const title = cut(match.title, width - 12 - facts.length);
  const lines = showExcerpt(match.content, match.explain?.terms ?? wordsOf(query), width - INDENT.length);
  return [
    `${bold(String(rank).padStart(2))}  ${green(match.score.toFixed(2))}  ${title === '' ? '' : `${bold(title)}  `}${dim(facts)}`,
    ...lines.map((line) => INDENT + line),
  ];
}

/** Which stage found it, at which rank, and what each feature added to the score. */
function describeReasons(match: MatchItem, matches: readonly MatchItem[]): string[] {
  const { lexical, dense, waypoint, terms, features, weights } = match.explain!;
  const width = widthOfTerminal() - INDENT.length - 10;
  const stages = [
    [
      'words',
      lexical === null
        ? 'did not find it'
        : `rank ${lexical.rank}${terms.length === 0 ? '' : `, matched: ${terms.join(', ')}`}`,
    ],
    ['vector', dense === null ? 'did not find it' : `rank ${dense.rank}, similarity ${dense.similarity.toFixed(2)}`],
    ['waypoint', waypoint === null ? 'none led here' : describeWaypoint(waypoint, matches)],
  ] as const;
  const parts = FEATURES.map((name) => features[name] * weights[name]);
  const rows = [
    ['score', ...FEATURES, ''],
    ['value', ...FEATURES.map((name) => features[name].toFixed(2)), ''],
    ['× weight', ...FEATURES.map((name) => weights[name].toFixed(2)), ''],
    ['=', ...parts.map((part) => part.toFixed(2)), describeSum(match)],
  ];
  return [
    ...stages.map(([stage, found]) => `${INDENT}${cyan(stage.padEnd(10))}${dim(cut(found, width))}`),
    ...table(rows, '<>>>>>').map((row, line) => `${INDENT}${line === 0 ? cyan(row) : dim(row)}`),
  ];
}

/** The score is the sum as a share of the most it could be, times how sure the query as a whole is of its answers. */
function describeSum({ raw_score: sum, explain }: MatchItem): string {
  return `sum ${sum.toFixed(2)} × certainty ${explain!.confidence.toFixed(2)}`;
}

function describeWaypoint(
  { from, weight, activation }: { readonly from: string; readonly weight: number; readonly activation: number },
  matches: readonly MatchItem[],
): string {
  const place = matches.findIndex(({ id }) => id === from);
  return `from ${place === -1 ? from : `hit ${place + 1}`}, weight ${weight.toFixed(2)}, activation ${activation.toFixed(2)}`;
}
