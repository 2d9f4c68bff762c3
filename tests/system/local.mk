system_scripts += tests/system/programs.sh
