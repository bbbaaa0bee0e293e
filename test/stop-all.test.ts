import { expect, test } from 'vitest';
import { stopAll } from '../src/stop-all.ts';

test('a part that fails to stop does not keep the others running, and the first error is thrown', async () => {
  const stopped: string[] = [];
  const part = (name: string, error?: string) => ({
    stop: async () => {
      stopped.push(name);
      if (error !== undefined) throw new Error(error);
    },
  });
  await expect(stopAll([part('lock'), part('engine', 'second'), part('api', 'first')])).rejects.toThrow('first');
  expect(stopped).toEqual(['api', 'engine', 'lock']);
  await stopAll([]);
});
