import type { Command } from 'commander';
import type { ConsolidateOptions } from '../commands/consolidate.ts';
import { overHttp } from '../options.ts';

const JSON_LINE = 'print the reply as JSON';

/** Adds the commands that gather similar memories into one on a running server, and the command that undoes it. */
export function addConsolidationCommands(program: Command): void {
  overHttp(program, 'consolidate')
    .description('gather memories that say nearly the same or follow one topic; they stay, and this can be undone')
    .option('--user <id>', 'only memories of this user')
    .option('--dry-run', 'only show what would be gathered')
    .option('--again', 'also gather what was undone before')
    .option('--json', JSON_LINE)
    .action(async (options: ConsolidateOptions) => (await import('../commands/consolidate.ts')).consolidate(options));
  const consolidations = program.command('consolidations').description('what was gathered');
  overHttp(consolidations, 'list', { isDefault: true })
    .description('list consolidations, newest first')
    .option('--user <id>', 'only those of this user')
    .option('--json', JSON_LINE)
    .action(async (options: ConsolidateOptions) =>
      (await import('../commands/consolidate.ts')).listConsolidations(options),
    );
  overHttp(consolidations, 'undo')
    .description('undo a consolidation, or all of a run by the id of its job')
    .argument('<id>')
    .action(async (id: string, options: object) =>
      (await import('../commands/consolidate.ts')).undoConsolidation(id, options),
    );
}
