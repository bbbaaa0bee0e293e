/** Translates learned weights to the field names of the API. */
import type { Learned, LearnedOptions } from '../../engine/index.ts';
import type { LearnedItem } from '../schemas/learned.ts';

export function learnedItem({ id, at, state, profile, before, after, report }: Learned): LearnedItem {
  return {
    id,
    at,
    state,
    profile,
    before: optionsItem(before),
    after: optionsItem(after),
    report: {
      learned_from: report.learnedFrom,
      held_out: report.heldOut,
      held_out_from: report.heldOutFrom,
      before: report.before,
      after: report.after,
      chance: report.chance,
    },
  };
}

function optionsItem({ weights, vectorWeight, minScore }: LearnedOptions): LearnedItem['before'] {
  return { weights: { ...weights }, vector_weight: vectorWeight, min_score: minScore };
}
