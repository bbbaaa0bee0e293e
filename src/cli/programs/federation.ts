import type { Command } from 'commander';
import type { FederationOptions } from '../commands/federation.ts';
import { overHttp } from '../options.ts';

const JSON_LINE = 'print the reply as JSON';

/** Adds the commands about other servers to which queries of a running server may be sent. */
export function addFederationCommands(program: Command): void {
  const federation = program.command('federation').description('other Cairn servers that questions may name');
  overHttp(federation, 'list', { isDefault: true })
    .description('list the servers, without their keys')
    .option('--json', JSON_LINE)
    .action(async (options: FederationOptions) => (await import('../commands/federation.ts')).listServers(options));
  overHttp(federation, 'add')
    .description('register a server; its key is kept in a sealed data folder only')
    .argument('<name>', 'name by which questions name it')
    .argument('<address>', 'its address, such as https://memory.example.com')
    .option('--server-key <key>', 'key that it is asked with (default: CAIRN_SERVER_KEY); none for public reads')
    .option('--tenant <id>', 'tenant that is asked there (default: the first of the key)')
    .option('--json', JSON_LINE)
    .action(async (name: string, address: string, options: FederationOptions) =>
      (await import('../commands/federation.ts')).addServer(name, address, options),
    );
  overHttp(federation, 'remove')
    .description('forget a server and its key')
    .argument('<name>')
    .action(async (name: string, options: FederationOptions) =>
      (await import('../commands/federation.ts')).removeServer(name, options),
    );
}
