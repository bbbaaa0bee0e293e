/**
 * Writes what follows from the description of the API: docs/reference/http-api.md, and the generated parts of the
 * clients. `npm run reference`; a test fails if this was forgotten.
 */
import fs from 'node:fs';
import path from 'node:path';
import { derivedFiles } from './derived-files.ts';

for (const [name, text] of await derivedFiles()) {
  const file = path.join(import.meta.dirname, '..', name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, text);
}
