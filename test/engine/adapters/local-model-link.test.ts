import fs from 'node:fs';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { fingerprint, readLocalModel } from '../../../src/engine/adapters/local-model.ts';
import { createModelLink } from '../../../src/engine/adapters/local-model-link.ts';
import { makeOnnx } from '../../support/make-onnx.ts';
import { tempFolder } from '../../support/temp-folder.ts';

/** Links a tiny model that a runtime runs which first runs `script`; `note` is a file for what the script sees. */
function linkTo(script: (note: string) => string) {
  const folder = path.join(tempFolder(), 'tiny-model');
  const table = Array.from({ length: 6 }, (_, token) => [token, 1]);
  makeOnnx({ words: ['the', 'kettle'], table, folder });
  const local = readLocalModel(folder, 'mean');
  const note = path.join(tempFolder(), 'note');
  const file = path.join(tempFolder(), 'runtime.mjs');
  const runtime = pathToFileURL(file).href;
  fs.writeFileSync(
    file,
    `import fs from 'node:fs';
     import { isMainThread } from 'node:worker_threads';
     ${script(JSON.stringify(note))}
     export * from ${JSON.stringify(import.meta.resolve('onnxruntime-web'))};`,
  );
  return { ...createModelLink({ local, runtime, named: fingerprint(local) }), note };
}

test('a model runs on a thread of its own', async () => {
  const { compute, note } = linkTo((file) => `fs.writeFileSync(${file}, String(isMainThread));`);
  expect(await compute(['the kettle'])).toHaveLength(1);
  expect(fs.readFileSync(note, 'utf8')).toBe('false');
});

test('a thread that ends fails the calls that wait for it, and the next call starts another one', async () => {
  const { compute } = linkTo(
    (file) => `if (!fs.existsSync(${file})) { fs.writeFileSync(${file}, ''); process.exit(1); }`,
  );
  const failed = { code: 'unavailable', message: 'the local model in LOCAL_MODEL_PATH ended' };
  const [first, second] = [compute(['the']), compute(['kettle'])];
  await expect(first).rejects.toMatchObject(failed);
  await expect(second).rejects.toMatchObject(failed);
  expect(await compute(['the'])).toHaveLength(1);
});

test('a link that is closed ends its thread and the calls that wait', async () => {
  const { compute, close, note } = linkTo((file) => `setInterval(() => fs.appendFileSync(${file}, '.'), 5);`);
  expect(await compute(['the'])).toHaveLength(1);
  const waiting = compute(Array.from({ length: 1_000 }, () => 'kettle'));
  close();
  await expect(waiting).rejects.toMatchObject({ message: 'the local model in LOCAL_MODEL_PATH ended' });
  const { length } = fs.readFileSync(note);
  await setTimeout(50);
  expect(fs.readFileSync(note)).toHaveLength(length);
});

test('a call that is given up ends at once, and those behind it are answered', async () => {
  const { compute } = linkTo(() => '');
  const giveUp = new AbortController();
  const [first, second] = [compute(['the'], giveUp.signal), compute(['kettle', 'the'])];
  giveUp.abort();
  await expect(first).rejects.toMatchObject({ message: expect.stringMatching(/given up/) as string });
  expect(await second).toHaveLength(2);
});
