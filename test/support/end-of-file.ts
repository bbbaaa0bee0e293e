import fs from 'node:fs';
import { afterAll } from 'vitest';
import { leftovers } from './leftovers.ts';

/** Vitest runs this module anew for each test file, so each file has the hook. */
afterAll(async () => {
  await Promise.all([...leftovers.processes].map((program) => program.end('SIGKILL')));
  for (const folder of leftovers.folders) {
    leftovers.folders.delete(folder);
    fs.rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
});
