import fs from 'node:fs';
import { registerHooks } from 'node:module';

/**
 * Resolves the name of this package to its sources, by way of its `exports`: a program that imports `cairn-memory` runs
 * before anything is built. For `node --import`.
 */

const ROOT = new URL('../../', import.meta.url);
const { name, exports } = JSON.parse(fs.readFileSync(new URL('package.json', ROOT), 'utf8'));

registerHooks({
  resolve(specifier, context, next) {
    const built = exports[specifier.replace(name, '.')]?.default;
    if (!specifier.startsWith(name) || built === undefined) return next(specifier, context);
    const source = built.replace('./dist/', './src/').replace(/\.js$/, '.ts');
    return { url: new URL(source, ROOT).href, shortCircuit: true };
  },
});
