/** Read commands of evaluation sets, whose items have megabytes of text. */
import { listEvals, readEvalTexts } from '../store/evals.ts';
import type { ReadContext } from './read-context.ts';

/** The read commands of evaluation sets, by name. The items of a set are passed as the JSON that is stored. */
export const EVAL_READS = {
  listEvals: ({ open }: ReadContext, _: Record<never, never>) => {
    const { store } = open();
    return store.read(() => listEvals(store));
  },
  readEval: ({ open }: ReadContext, { name }: { readonly name: string }) => {
    const { store } = open();
    return store.read(() => readEvalTexts(store, name));
  },
};
