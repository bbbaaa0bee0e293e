/**
 * Reports a failure that the agent goes on without: as a warning of the process or, in edge runtimes where a process
 * cannot warn, on the console.
 */
export function warn(error: unknown): void {
  const warning = error instanceof Error ? error : new Error(String(error));
  const { process } = globalThis as { readonly process?: Partial<Pick<NodeJS.Process, 'emitWarning'>> };
  if (typeof process?.emitWarning === 'function') process.emitWarning(warning, { code: 'CAIRN_MEMORY' });
  // eslint-disable-next-line no-console -- Nothing else is left to tell of it.
  else console.warn(warning);
}
