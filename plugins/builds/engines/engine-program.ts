import type { EngineProgram } from '../api.js'
import { stepsGroupScript, stepsRuntimeScript } from './steps-group.js'

/** Everything of a build engine that stays when its container goes. */
export const engineVolumePath = '/var/lib/builder'
export const workPath = `${engineVolumePath}/work`
export const basesPath = `${engineVolumePath}/bases`
/** Programs of the platform's machine. */
export const toolsPath = `${engineVolumePath}/tools`

/** A container may not write to its control groups, nor to what the kernel can be set to, unless it mounts them anew. */
const preparation = `set -e
mkdir -p ${workPath} ${basesPath} ${toolsPath} ${engineVolumePath}/tmp
${stepsGroupScript.trim()}
${stepsRuntimeScript.trim()}
mount -o remount,bind,rw /proc/sys
rm -rf ${workPath}/*
exec "$@"`

/** The entry point of the container. */
export const entrypoint = ({ daemon }: EngineProgram): readonly string[] => [
  'sh',
  '-c',
  preparation,
  'prepare',
  ...daemon.argv
]
