/**
 * The stored form of a candidate (a memory that a query considered) in the recall log: a JSON array of values without
 * names, which takes half of the bytes of an object. It leaves out the memory's number and id, which are in the row's
 * columns.
 */
import type { Features, Hit, LoggedCandidate, LoggedState, Outcome } from '../types.ts';
import { parseStored } from './stored-json.ts';

/**
 * Names of the feature values in a stored candidate, in the order of their array. A new name may only be added at the
 * end.
 */
const FEATURES = [
  'similarity',
  'activation',
  'waypoint',
  'salience',
  'strength',
  'recency',
  'retention',
  'confidence',
] as const satisfies (keyof Features)[];
const RERANK = [
  'coverage',
  'proximity',
  'phrases',
  'identifiers',
  'fields',
  'speaker',
  'statement',
  'dated',
  'recency',
] as const;
/** Measures of earlier versions. Candidates no longer have them, and their arrays have null in their place. */
const FORMER: ReadonlySet<string> = new Set(['coverage', 'proximity']);
const MEASURES = RERANK.filter((name) => !FORMER.has(name));
const LEXICAL = ['rank', 'bm25', 'coverage'] as const;
const DENSE = ['rank', 'similarity', 'window'] as const;
const FUSED = ['rank', 'score'] as const;
const STATE = [
  'state',
  'status',
  'primarySector',
  'sectors',
  'salience',
  'strength',
  'decayLambda',
  'accessCount',
  'lastSeenAt',
  'sectorConfidence',
] as const satisfies (keyof LoggedState)[];

type Value = string | number | null | readonly string[];

/**
 * The stored array of a candidate. `path` of a hit is null if the hit matched the query by itself, so that the path
 * would be only its own id.
 */
type Row = readonly [
  outcome: Outcome,
  score: number,
  rawScore: number,
  features: readonly Value[],
  adjustments: LoggedCandidate['adjustments'],
  rerank: readonly Value[] | Readonly<Record<string, number>> | null,
  lexical: readonly Value[] | null,
  dense: readonly Value[] | null,
  fused: readonly Value[] | null,
  arrival: LoggedCandidate['arrival'],
  fit: LoggedCandidate['fit'],
  held: number | null,
  isStrange: 0 | 1,
  hit?: readonly [
    version: number,
    state: readonly Value[],
    path: readonly string[] | null,
    rest?: Pick<Hit, 'supersedes' | 'similar'>,
  ],
];

/** Encodes a candidate as the recall log stores it. */
export function encodeCandidate(candidate: LoggedCandidate): string {
  const { outcome, score, rawScore, features, adjustments, rerank, lexical, dense, fused, arrival, fit } = candidate;
  const row: Row = [
    outcome,
    score,
    rawScore,
    valuesOf(features, FEATURES),
    adjustments,
    rerank !== null && isOfNames(rerank, MEASURES) ? RERANK.map((name) => rerank[name] ?? null) : rerank,
    lexical && valuesOf(lexical, LEXICAL),
    dense && valuesOf(dense, DENSE),
    fused && valuesOf(fused, FUSED),
    arrival,
    fit,
    candidate.held,
    candidate.isStrange ? 1 : 0,
    ...(candidate.hit === undefined ? ([] as const) : ([encodeHit(candidate.hit, candidate.id)] as const)),
  ];
  return JSON.stringify(row);
}

function encodeHit({ version, state, path, supersedes, similar }: NonNullable<LoggedCandidate['hit']>, id: string) {
  const own = path.length === 1 && path[0] === id ? null : path;
  const values = valuesOf(state, STATE);
  if (supersedes === undefined && similar === undefined) return [version, values, own] as const;
  const rest = { ...(supersedes === undefined ? {} : { supersedes }), ...(similar === undefined ? {} : { similar }) };
  return [version, values, own, rest] as const;
}

/**
 * Decodes a candidate of the recall log.
 * @param data result of `encodeCandidate`, or the whole candidate as a JSON object, which earlier versions stored
 * @throws EngineError `internal` for a text that is not JSON
 */
export function decodeCandidate(
  data: string,
  { memoryNo, id }: Pick<LoggedCandidate, 'memoryNo' | 'id'>,
): LoggedCandidate {
  const stored = parseStored(data) as Row | LoggedCandidate;
  if (!isRow(stored)) return stored;
  const [outcome, score, rawScore, features, adjustments, rerank, lexical, dense, fused, arrival, fit, held] = stored;
  const [, , , , , , , , , , , , isStrange, hit] = stored;
  return {
    memoryNo,
    id,
    outcome,
    ...(hit === undefined ? {} : { hit: decodeHit(hit, id) }),
    score,
    rawScore,
    features: namedBy(FEATURES, features),
    adjustments,
    rerank: Array.isArray(rerank) ? measuresOf(rerank as Value[]) : (rerank as LoggedCandidate['rerank']),
    lexical: lexical && namedBy(LEXICAL, lexical),
    dense: dense && namedBy(DENSE, dense),
    fused: fused && namedBy(FUSED, fused),
    arrival,
    fit,
    held,
    isStrange: isStrange === 1,
  };
}

function measuresOf(values: readonly Value[]): NonNullable<LoggedCandidate['rerank']> {
  const named = namedBy<Record<string, number | null>>(RERANK, values);
  return Object.fromEntries(Object.entries(named).filter((entry): entry is [string, number] => entry[1] !== null));
}

const isRow = (stored: Row | LoggedCandidate): stored is Row => Array.isArray(stored);

function decodeHit(
  [version, state, path, rest = {}]: NonNullable<Row[13]>,
  id: string,
): NonNullable<LoggedCandidate['hit']> {
  return { path: path ?? [id], ...rest, version, state: namedBy(STATE, state) };
}

function isOfNames(record: Readonly<Record<string, number>>, names: readonly string[]): boolean {
  return Object.keys(record).length === names.length && names.every((name) => record[name] !== undefined);
}

function valuesOf<Name extends string>(record: Readonly<Record<Name, Value>>, names: readonly Name[]): Value[] {
  return names.map((name) => record[name]);
}

/** Gives values their names. An array from before the last names were added has values only for the first names. */
function namedBy<Named>(names: readonly string[], values: readonly Value[]): Named {
  return Object.fromEntries(values.map((value, place) => [names[place], value])) as Named;
}
