/**
 * `npm start`: builds what is stale, then becomes the platform. It is one process on purpose: npm and
 * every supervisor send their signals to the process they started, and that must be the platform itself.
 */
import { build } from './build.mjs'

const { written } = await build()
if (written > 0) console.log(`built ${written} files`)
await import('../dist/core/main.js')
