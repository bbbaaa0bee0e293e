/**
 * Writes docs/reference/http-api.md from the description of the API: `npm run reference`. A test fails if this was
 * forgotten.
 */
import fs from 'node:fs';
import path from 'node:path';
import { describeApi } from '../src/api/openapi/describe.ts';
import { ROUTE_GROUPS } from '../src/api/routes.ts';
import { render } from './render.ts';

const file = path.join(import.meta.dirname, '../docs/reference/http-api.md');
fs.mkdirSync(path.dirname(file), { recursive: true });
fs.writeFileSync(file, await render(describeApi(ROUTE_GROUPS, '')));
