/**
 * A failure that the user of the command can do something about. Its `message` is the one line that is printed: what
 * failed and what to do next.
 */
export class CliError extends Error {
  override readonly name = 'CliError';
  /** Exit code of the process: 1 for a failure, 2 for a command with wrong arguments. */
  readonly exitCode: 1 | 2;

  constructor(message: string, { exitCode = 1, cause }: { readonly exitCode?: 1 | 2; readonly cause?: unknown } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.exitCode = exitCode;
  }
}
