/** Translates evaluation sets and runs to the field names of the API. */
import type { EvalItem, EvalOutcome, EvalRun, EvalSummary, NewEvalSet } from '../../engine/index.ts';
import type { EvalRunItem, EvalRunReply, EvalSetBody, EvalSetItem, EvalSummaryItem } from '../schemas/evals.ts';

export function toEvalSet({ name, guard = false, items }: EvalSetBody): NewEvalSet {
  return { name, guard, items: items.map(({ user_id: userId, ...item }) => ({ ...item, userId })) };
}

export function evalSetItem({ name, guard, items }: NewEvalSet): EvalSetItem {
  return { name, guard, items: items.map(evalItem) };
}

export function evalItem({ query, userId, k, expected, forbidden }: EvalItem): EvalSetItem['items'][number] {
  return {
    query,
    ...(userId === undefined ? {} : { user_id: userId }),
    ...(k === undefined ? {} : { k }),
    expected: [...expected],
    ...(forbidden === undefined ? {} : { forbidden: [...forbidden] }),
  };
}

export function evalRunItem({ at, version, model, settings, changed, ...scores }: EvalRun): EvalRunItem {
  const { items, recall, precision, rightlyEmpty, forbidden, p95Ms } = scores;
  return {
    at,
    version,
    model,
    settings,
    changed: [...changed],
    items,
    recall,
    precision,
    rightly_empty: rightlyEmpty,
    forbidden,
    p95_ms: p95Ms,
  };
}

export function evalOutcomeItem({ place, hits, missing, forbidden, ms }: EvalOutcome): EvalRunReply['items'][number] {
  return { place, hits: [...hits], missing: [...missing], forbidden: [...forbidden], ms };
}

export function evalSummaryItem({ name, guard, items, updatedAt, lastRun }: EvalSummary): EvalSummaryItem {
  return { name, guard, items, updated_at: updatedAt, last_run: lastRun && evalRunItem(lastRun) };
}
