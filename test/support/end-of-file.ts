import fs from 'node:fs';
import { afterAll } from 'vitest';
import { leftovers } from './leftovers.ts';

/**
 * Removes what the tests of the file have started and made. Vitest runs this module again for each test file, so the
 * hook exists in each of them.
 */
afterAll(async () => {
  await Promise.all([...leftovers.processes].map((program) => program.end('SIGKILL')));
  for (const folder of leftovers.folders) {
    leftovers.folders.delete(folder);
    fs.rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
});
