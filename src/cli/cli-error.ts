/** What a person can do something about: `message` is the one line they read, saying what failed and what to do next. */
export class CliError extends Error {
  override readonly name = 'CliError';
  /** 1 for what failed, 2 for a command that was called wrongly. */
  readonly exitCode: 1 | 2;

  constructor(message: string, { exitCode = 1, cause }: { readonly exitCode?: 1 | 2; readonly cause?: unknown } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.exitCode = exitCode;
  }
}
