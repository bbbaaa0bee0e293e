import type { Command } from 'commander';

/** Declares `cairn import`. @param command the command, with the options of the connection to a server */
export function declareImport(command: Command): void {
  command
    .description('store many memories; after an interruption run it again, stored memories are recognised')
    .argument(
      '<file>',
      'one JSON object per line, in the form of POST /memory/add; - for standard input; or openmemory',
    )
    .argument('[database]', 'after openmemory: a SQLite file of OpenMemory, which is only read')
    .action(async (...args) =>
      (await import('./commands/import.ts')).importFrom(...(args as unknown as [string, string?, object?])),
    );
}
