/**
 * A process that upgrades the tenant's file in its argument to the newest schema, and prints a line before and after.
 */
import { openStore } from '../../src/engine/store/open-store.ts';

process.stdout.write('begin\n');
openStore(process.argv[2]!, { role: 'worker' }).close();
process.stdout.write('end\n');
