import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll } from 'vitest';

const folders: string[] = [];

afterAll(() => {
  for (const folder of folders.splice(0))
    fs.rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
});

/** A fresh, empty folder that is removed after the test file. */
export function tempFolder(): string {
  const folder = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'cairn-'));
  folders.push(folder);
  return folder;
}
