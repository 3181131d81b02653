// deft/session/head.hpp: no licence.
#pragma once
