import fs from 'node:fs';

const manifest = JSON.parse(fs.readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

/** The version of Cairn, as in package.json, such as `0.1.0`. */
export const VERSION = manifest.version;
