import { spawnSync } from 'node:child_process';
import path from 'node:path';

/** Whether there is a Python for the client, whose types need 3.11. CI sets REQUIRE_PYTHON. */
export const hasPython = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 11))']).status === 0;
if (process.env.REQUIRE_PYTHON === '1' && !hasPython)
  throw new Error('REQUIRE_PYTHON: there is no python3 from 3.11 on');

/** The environment in which Python finds the client. */
export function pythonEnvironment(): NodeJS.ProcessEnv {
  const client = path.resolve(import.meta.dirname, '../../clients/python');
  return { ...process.env, PYTHONPATH: client, PYTHONDONTWRITEBYTECODE: '1' };
}
