import fs from 'node:fs';

const manifest = JSON.parse(fs.readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

/** The version in package.json. */
export const VERSION = manifest.version;
