import { expect, test } from 'vitest';
import { createRandom } from '../../../src/engine/random.ts';
import { decompose } from '../../../src/engine/text/decompose.ts';

test('a large matrix is decomposed with pauses inside a round, too', async () => {
  const [rows, perRow, columns] = [1_000, 200, 1_000];
  const random = createRandom(1);
  const values = rows * perRow;
  let pauses = 0;
  const vectors = await decompose(
    {
      starts: Int32Array.from({ length: rows + 1 }, (_, row) => row * perRow),
      places: Int32Array.from({ length: values }, () => Math.floor(random() * columns)),
      values: Float64Array.from({ length: values }, random),
    },
    { columns, dimensions: 64, seed: 1, pause: () => Promise.resolve(void (pauses += 1)) },
  );
  expect(vectors).toHaveLength(64);
  // Each of the six rounds takes over thirty million multiplications.
  expect(pauses).toBeGreaterThanOrEqual(18);
});
