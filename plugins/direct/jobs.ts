import type { SingletonDeclarer } from 'busbar/sdk'
import type { Direct } from './direct.js'

export function singletons(singleton: SingletonDeclarer<Direct>) {
  singleton({ name: 'container-watch', run: ({ signal }, { containers }) => containers.run(signal) })
}
