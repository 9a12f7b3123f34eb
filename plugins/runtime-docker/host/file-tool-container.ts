import type { ToolsKind } from './host-tools.js'

/**
 * Sees the engine's folder and the processes of the machine, and can change neither: it has no network, reads what others
 * may not, and asks of processes which files they hold.
 */
export const fileTools = (dataRoot: string): ToolsKind => ({
  purpose: 'that counts the files of containers',
  label: 'busbar-system=file-tools',
  lifeSeconds: 300,
  files: [dataRoot],
  host: { NetworkMode: 'none', PidMode: 'host', CapAdd: ['DAC_READ_SEARCH', 'SYS_PTRACE'] }
})
