import { judge, type Judged } from '../evals/measure.ts';
import { queryOfItem } from '../evals/questions.ts';
import type { EvalItem, RetrievalOptions } from '../types.ts';
import { answerQuery } from './answer-query.ts';
import type { ReadContext } from './read-context.ts';

/**
 * Runs the query of one item of an evaluation set and judges the answer. Both are done on the reader thread, since all
 * texts of the answer, up to some megabytes, are searched for what is expected. The measured time is that of the query
 * only.
 * @param place index of the item in its set
 */
export async function askEval(
  context: ReadContext,
  { item, place, defaults }: { readonly item: EvalItem; readonly place: number; readonly defaults: RetrievalOptions },
  signal?: AbortSignal,
): Promise<Judged> {
  const started = performance.now();
  const { result } = await answerQuery(context, { query: queryOfItem(item), defaults }, signal);
  const ms = performance.now() - started;
  return judge(
    item,
    place,
    result.hits.map(({ memory }) => memory),
    ms,
  );
}
