/** Writes grafana/dashboards from grafana/panels: `node grafana/build.ts`. A test fails if this was forgotten. */
import fs from 'node:fs';
import path from 'node:path';
import { DASHBOARDS } from './dashboards.ts';
import { fileOf, render } from './render.ts';

for (const dashboard of DASHBOARDS) {
  fs.writeFileSync(path.join(import.meta.dirname, 'dashboards', fileOf(dashboard)), await render(dashboard));
}
