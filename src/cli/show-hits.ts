import type { MemoryItem } from '../api/schemas/memory-replies.ts';
import type { MatchItem } from '../api/schemas/query-replies.ts';
import type { HitExplanation } from '../engine/index.ts';
import { showExcerpt, wordsOf } from './excerpt.ts';
import { age, bold, cut, cyan, dim, green, table, widthOfTerminal } from './terminal.ts';

export type { MatchItem, MemoryItem };

export interface QueryReply {
  readonly matches: readonly MatchItem[];
  readonly degraded: boolean;
  readonly degraded_reasons?: readonly string[];
  readonly floor?: {
    readonly min_score: number;
    /** Whether `min_score` was applied; if not, matches may have lower scores. */
    readonly acted: boolean;
    /** Number of candidates that scored below `min_score`. One with a strong link may be a match all the same. */
    readonly below: number;
    /** Highest score of a candidate below `min_score`; null if there is none. */
    readonly best_below: number | null;
  };
  /** How many matches the option `cut` left out of the answer; absent if it left out none. */
  readonly cut?: { readonly left_out: number };
}

const INDENT = '    ';

/**
 * Makes the lines that present hits to a person, in the order of `matches`, each hit followed by its explanation if it
 * has one.
 * @param query decides which passage of a long text is shown
 * @param now time from which ages are counted, Unix ms
 */
export function describeHits(matches: readonly MatchItem[], query: string, now = Date.now()): string[] {
  return matches.flatMap((match, place) => [
    ...(place === 0 ? [] : ['']),
    ...describeHit(match, { rank: place + 1, query, now }),
    ...(match.explain === undefined ? [] : describeReasons(match, matches)),
  ]);
}

/**
 * Makes the lines that say how many candidates scored below `min_score` (if it was applied) and how many matches the
 * option `cut` left out, and how to see them. If there are none of either, there are no lines. If the answer has
 * matches, a blank line comes first.
 */
export function describeLeftOut({ floor, cut, matches }: QueryReply): string[] {
  const lines: string[] = [];
  if (floor !== undefined && floor.acted && floor.best_below !== null) {
    const memories = floor.below === 1 ? 'memory scored' : 'memories scored';
    const best = `the best ${floor.best_below.toFixed(2)}`;
    lines.push(`${floor.below} ${memories} under ${floor.min_score}, ${best}: ask with --min-score 0 to see them.`);
  }
  if (cut !== undefined) {
    const memories = cut.left_out === 1 ? 'memory is' : 'memories are';
    lines.push(`${cut.left_out} more ${memories} left out by the cut: ask with --cut none to see them.`);
  }
  return matches.length === 0 || lines.length === 0 ? lines : ['', ...lines];
}

/** The fields of a hit that are printed. */
type ShownHit = Pick<
  MatchItem,
  'user_id' | 'primary_sector' | 'event_time' | 'title' | 'content' | 'score' | 'explain'
>;

/**
 * Makes the lines that present one hit, without its explanation.
 * @param options.rank place of the hit in the answer, counted from 1
 * @param options.query decides which passage of a long text is shown, unless `explain` names the terms
 * @param options.now time from which the age is counted, Unix ms
 * @param options.origin tenant or server that the hit is from, if hits of several are printed
 */
export function describeHit(
  match: ShownHit,
  { rank, query, now, origin }: { rank: number; query: string; now: number; origin?: string },
): string[] {
  const width = widthOfTerminal();
  const user = match.user_id === '' ? '' : ` · ${cut(match.user_id, 20)}`;
  const from = origin === undefined ? '' : ` · ${cut(origin, 40)}`;
  const facts = `${match.primary_sector} · ${age(match.event_time, now)}${user}${from}`;
  const title = cut(match.title, width - 12 - facts.length);
  const shownTitle = title === '' ? '' : `${bold(title)}  `;
  const lines = showExcerpt(match.content, match.explain?.terms ?? wordsOf(query), width - INDENT.length);
  return [
    `${bold(String(rank).padStart(2))}  ${green(match.score.toFixed(2))}  ${shownTitle}${dim(facts)}`,
    ...lines.map((line) => INDENT + line),
  ];
}

/**
 * Makes the lines that explain a hit: its ranks in the stages that found it, and how the profile computed its score.
 */
function describeReasons(match: MatchItem, matches: readonly MatchItem[]): string[] {
  const explain = match.explain!;
  const { lexical, dense, arrival, terms, adjustments, rerank } = explain;
  const width = widthOfTerminal() - INDENT.length - 10;
  const stages: readonly (readonly [string, string])[] = [
    [
      'words',
      lexical === null
        ? 'did not find it'
        : `rank ${lexical.rank}${terms.length === 0 ? '' : `, matched: ${terms.join(', ')}`}`,
    ],
    ['vector', dense === null ? 'did not find it' : `rank ${dense.rank}, similarity ${dense.similarity.toFixed(2)}`],
    ['link', arrival === null ? 'none led here' : describeArrival(arrival, matches)],
    ...(match.supersedes === undefined ? [] : [['replaces', nameOf(match.supersedes, matches)] as const]),
    ...(rerank === null ? [] : [['rerank', describeMeasures(rerank)] as const]),
    ...(adjustments.length === 0 ? [] : [['adjusted', describeAdjustments(adjustments, matches)] as const]),
  ];
  return [
    ...stages.map(([stage, result]) => `${INDENT}${cyan(stage.padEnd(10))}${dim(cut(result, width))}`),
    ...describeFormula(explain).map((row, line) => `${INDENT}${line === 0 ? cyan(row) : dim(row)}`),
    `${INDENT}${cyan('score'.padEnd(10))}${dim(describeScore(match, explain))}`,
  ];
}

/**
 * Makes one line for a memory in a list or a timeline: its event time, session and text. The anchor of a timeline is
 * marked.
 */
export function describeMoment(memory: MemoryItem, { isAnchor = false } = {}): string {
  const time = new Date(memory.event_time).toISOString().slice(0, 16).replace('T', ' ');
  const session = memory.session_id === '' ? '' : `${cut(memory.session_id, 16)}  `;
  const text = cut(memory.content, widthOfTerminal() - 20 - session.length);
  return `${isAnchor ? '▸' : ' '} ${dim(time)}  ${dim(session)}${isAnchor ? bold(text) : text}`;
}

/** Makes the rows that show the profile's formula with the memory's values, before any adjustment. */
function describeFormula({ profile, features, weights, fused }: HitExplanation): string[] {
  switch (profile) {
    case 'composite':
    case 'activation': {
      const names = Object.keys(weights).filter((name) => name in features) as (keyof typeof features &
        keyof typeof weights)[];
      const products = names.map((name) => features[name] * (weights[name] ?? 0));
      const sum = products.reduce((total, product) => total + product, 0);
      const rows = [
        [profile, ...names, ''],
        ['value', ...names.map((name) => features[name].toFixed(2)), ''],
        ['× weight', ...names.map((name) => (weights[name] ?? 0).toFixed(2)), ''],
        ['=', ...products.map((product) => product.toFixed(2)), `sum ${sum.toFixed(2)}`],
      ];
      return table(rows, `<${'>'.repeat(names.length)}>`);
    }
    case 'retention': {
      const { similarity, retention } = features;
      const alpha = weights.alpha ?? 0;
      const product = (similarity * retention ** alpha).toFixed(2);
      const rows = [
        [profile, 'similarity', 'retention', 'alpha', ''],
        [
          'value',
          similarity.toFixed(2),
          retention.toFixed(2),
          alpha.toFixed(2),
          `similarity × retention^alpha = ${product}`,
        ],
      ];
      return table(rows, '<>>>>');
    }
    case 'fusion': {
      const rows = [
        [profile, 'rank', 'activation'],
        ['value', fused === null ? 'none' : String(fused.rank), features.activation.toFixed(2)],
      ];
      return table(rows, '<>>');
    }
  }
}

/**
 * Makes the text that explains a hit's score (0 to 1), which is calculated from the raw score after adjustments and the
 * confidence of the query's answer.
 */
function describeScore({ score, raw_score }: MatchItem, { confidence }: HitExplanation): string {
  return `${score.toFixed(3)}, of raw ${raw_score.toFixed(3)} and certainty ${confidence.toFixed(2)}`;
}

function describeMeasures(measures: Readonly<Record<string, number>>): string {
  return Object.entries(measures)
    .map(([name, value]) => `${name} ${value.toFixed(2)}`)
    .join(', ');
}

function describeAdjustments(adjustments: HitExplanation['adjustments'], matches: readonly MatchItem[]): string {
  return adjustments
    .map(
      ({ by, factor, because, automatic }) =>
        `${by}${automatic ? ' (no client stated it)' : ''} × ${factor.toFixed(2)}` +
        (because === undefined ? '' : ` because of ${nameOf(because, matches)}`),
    )
    .join(', ');
}

function describeArrival(
  { from, via, entity, weight, hops, activation }: NonNullable<HitExplanation['arrival']>,
  matches: readonly MatchItem[],
): string {
  const origin =
    entity === undefined ? `from ${from === null ? 'elsewhere' : nameOf(from, matches)}` : `by the name ${entity}`;
  const distance = hops > 1 ? `, ${hops} hops` : '';
  return `${via} ${origin}, weight ${weight.toFixed(2)}${distance}, activation ${activation.toFixed(2)}`;
}

function nameOf(id: string, matches: readonly MatchItem[]): string {
  const index = matches.findIndex((match) => match.id === id);
  return index === -1 ? id : `hit ${index + 1}`;
}
