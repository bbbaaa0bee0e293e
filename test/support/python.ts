import { spawnSync } from 'node:child_process';
import path from 'node:path';

/**
 * Whether a Python of at least 3.11 is installed, which the types of the Python client need. CI sets REQUIRE_PYTHON.
 */
export const hasPython = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 11))']).status === 0;
if (process.env.REQUIRE_PYTHON === '1' && !hasPython)
  throw new Error('REQUIRE_PYTHON: there is no python3 from 3.11 on');

/** Returns environment variables with which Python finds the client. */
export function pythonEnvironment(): NodeJS.ProcessEnv {
  const client = path.resolve(import.meta.dirname, '../../clients/python');
  return { ...process.env, PYTHONPATH: client, PYTHONDONTWRITEBYTECODE: '1' };
}
