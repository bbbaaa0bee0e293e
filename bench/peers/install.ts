/**
 * Installs the packages of this folder's own package.json beside it, where git and the root's `npm ci` do not look.
 * Nothing is done if they are there in the versions of the lockfile.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

const FOLDER = import.meta.dirname;
/** Copy of the lockfile that the last install was made from. */
const INSTALLED = path.join(FOLDER, 'node_modules', '.installed-from.json');

/** Returns undefined when all is installed, else the reason why it is not. */
export function installPackages(): string | undefined {
  const lock = fs.readFileSync(path.join(FOLDER, 'package-lock.json'), 'utf8');
  if (fs.existsSync(INSTALLED) && fs.readFileSync(INSTALLED, 'utf8') === lock) return undefined;
  process.stderr.write(`installing the packages of ${path.relative(process.cwd(), FOLDER)}\n`);
  try {
    // Not `npm ci`, which refuses where the registry lacks a package of LanceDB for another platform.
    const args = ['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', FOLDER];
    execFileSync('npm', args, { cwd: FOLDER, stdio: ['ignore', 2, 'pipe'] });
    fs.writeFileSync(INSTALLED, lock);
    return undefined;
  } catch (error) {
    const { stderr, message } = error as Error & { readonly stderr?: Buffer };
    return /^npm error (?!code)(.+)/m.exec(stderr?.toString() ?? '')?.[1] ?? message;
  }
}
