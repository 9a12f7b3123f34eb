#!/usr/bin/env node
/** `npx busbar …`: builds what is stale, then becomes the command. */
import { build } from './build.mjs'

const { written } = await build()
if (written > 0) console.log(`built ${written} files`)
await import('../dist/scripts/busbar.js')
