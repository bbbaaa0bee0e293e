import type { ExplanationItem } from '../../api/schemas/query-replies.ts';
import type { HitExplanation, Outcome } from '../../engine/index.ts';
import { connect } from '../client.ts';
import { bold, counted, cut, cyan, dim, green, print, table, widthOfTerminal, yellow } from '../terminal.ts';
import { type AskOptions, queryBody } from './query.ts';

export interface ExplainCommandOptions extends AskOptions {
  readonly json?: boolean;
}

const OUTCOME_TEXTS: Readonly<Record<Outcome, string>> = {
  returned: 'It comes back',
  filtered: 'A filter keeps it out',
  no_match: 'Nothing leads to it',
  not_a_candidate: 'Too many others match better, so it was not considered',
  superseded: 'Another memory replaces it',
  sources_hidden: 'It was made of others, one of which a filter keeps out',
  below_min_score: 'Its score is below min_score',
  below_relative_floor: 'It is too far behind the best',
  not_exact: 'It answers too little of the question by itself',
  near_duplicate: 'A match that says nearly the same came back',
  document_limit: 'The limit of matches from its document is reached',
  kind_limit: 'The limit of matches of its kind is reached',
  beyond_k: 'Others fill all places',
  over_budget: 'The token budget has no room for it',
};

/** Runs `cairn explain QUERY ID`: prints why a query does or does not return a memory. */
export async function explain(query: string, id: string, options: ExplainCommandOptions): Promise<void> {
  const explanation = await connect(options).explainMemory({
    ...queryBody(query, options),
    memory_id: id,
  });
  print(...(options.json ? [JSON.stringify(explanation, null, 2)] : describe(explanation)));
}

function describe(explanation: ExplanationItem): string[] {
  const { outcome, rank, score, remedies, trace } = explanation;
  const standing = rank === null || score === null ? '' : dim(`  place ${rank}, score ${score.toFixed(3)}`);
  const rows = facts(explanation).map(([name, value]) => [`  ${cyan(name)}`, cut(value, widthOfTerminal() - 20)]);
  const stages = trace.map((stage) => [
    `  ${stage.stage}`,
    String(stage.in),
    String(stage.out),
    `${stage.ms.toFixed(2)} ms`,
    dim(cut(stage.note ?? '', widthOfTerminal() - 50)),
  ]);
  return [
    `${bold(outcome === 'returned' ? green(OUTCOME_TEXTS[outcome]) : yellow(OUTCOME_TEXTS[outcome]))}${standing}`,
    ...table(rows, '<<'),
    ...(remedies.length === 0 ? [] : ['', bold('What would bring it back'), ...adviceOf(explanation)]),
    '',
    bold(counted(trace.length, 'stage')),
    ...table([['', 'in', 'out', '', ''], ...stages], '<>>><'),
  ];
}

function facts({ failed_filters, superseded_by, terms, cosine, explain }: ExplanationItem): [string, string][] {
  const list = (name: string, values: readonly string[]): [string, string][] =>
    values.length === 0 ? [] : [[name, values.join(', ')]];
  return [
    ...list('fails', failed_filters),
    ...list('superseded by', superseded_by === null ? [] : [superseded_by]),
    ...list('matched', terms.matched),
    ...list('in context', terms.in_context),
    ...list('missed', terms.missed),
    ...list('similarity', cosine === null ? [] : [cosine.toFixed(3)]),
    ...list('features', explain === null ? [] : featuresOf(explain)),
  ];
}

function featuresOf({ features, weights }: HitExplanation): string[] {
  return Object.entries<number>({ ...features })
    .filter(([name]) => name in weights)
    .map(([name, value]) => `${name} ${value.toFixed(2)}`);
}

function adviceOf({ remedies, changes }: ExplanationItem): string[] {
  if (changes === null)
    return [...remedies.map((remedy) => `  ${remedy}`), dim('  no change of the request alone does this')];
  return remedies.map((remedy, place) => `  ${place === 0 ? '' : 'and '}${remedy}`);
}
