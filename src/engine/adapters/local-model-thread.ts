/** The thread on which a local model runs (`local-model-link.ts`). It answers one call after the other. */

import { setImmediate } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import pLimit from 'p-limit';
import { assert } from '../errors.ts';
import { giveWay, NICENESS } from '../give-way.ts';
import type { ModelCall, ModelThreadData } from './local-model-link.ts';
import { compute, type LoadedModel, loadModel, planRuns, tokenise } from './run-local-model.ts';

const { local, runtime, named } = workerData as ModelThreadData;
const port = parentPort;
assert(port !== null, 'the thread of a local model has a parent');
giveWay(NICENESS.questions);
const oneAtATime = pLimit(1);
/** Calls that are not answered yet. */
const open = new Set<number>();
let loaded: Promise<LoadedModel> | undefined;

port.on('message', ({ id, texts }: ModelCall) => {
  if (texts === null) return void open.delete(id);
  open.add(id);
  return void oneAtATime(async () => {
    const result = await answer(id, texts);
    if (open.delete(id)) port.postMessage({ id, ...result });
  });
});

async function answer(id: number, texts: readonly string[]) {
  let model: LoadedModel;
  try {
    model = await (loaded ??= loadModel(local, runtime, named));
  } catch (error) {
    loaded = undefined;
    // No text is involved yet, so the message cannot quote one.
    return { problem: `could not be loaded: ${error instanceof Error ? error.message : String(error)}` };
  }
  if (!open.has(id)) return { vectors: [] };
  try {
    const tokens = texts.map((text) => tokenise(model, text));
    const vectors = new Array<number[]>(texts.length);
    for (const run of planRuns(tokens)) {
      if (!open.has(id)) break;
      const computed = await compute(
        model,
        run.map((index) => tokens[index]!),
      );
      run.forEach((index, i) => (vectors[index] = computed[i]!));
      // A message that gives the call up is taken now.
      await setImmediate();
    }
    return { vectors };
  } catch {
    // The runtime's message may quote the text.
    return { problem: 'failed' };
  }
}
